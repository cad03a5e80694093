"""What a model is made of and what running it costs, told without running it."""
