"""The admin's home: the fleet in one picture, every saved target beside it, and the question in reach."""
