"""Actions: what people can do, declared once for all front ends."""
