"""What is seen. Widgets get values and post messages; they never query."""
