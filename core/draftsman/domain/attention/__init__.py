"""The time of people: how soon questions are seen and answered, and whom they interrupt. Pure."""
