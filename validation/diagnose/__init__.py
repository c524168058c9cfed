"""What `anabranch diagnose` says beside the truth."""
