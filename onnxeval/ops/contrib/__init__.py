"""Operators outside the standard that exporters and optimisers write (domain `com.microsoft`)."""
