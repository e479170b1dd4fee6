"""What a save may say: each module reads one kind of input and refuses what is wrong, in one line."""
