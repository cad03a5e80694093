"""A model run on many items one by one, more of them than memory holds: streamed in, appended to files, resumable."""
