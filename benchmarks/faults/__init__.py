"""What a desk of real processes does when parts of it fail."""
