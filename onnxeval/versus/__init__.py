"""A run held against another engine or another form of the model, value by value: `verdict.versus` does it."""
