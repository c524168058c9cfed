"""The pages of the generated reference, one module per page."""
