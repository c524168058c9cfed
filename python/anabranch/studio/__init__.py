"""The studio: a page with the engine inside, and a server for it on this machine."""
