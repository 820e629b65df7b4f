"""The test kit of channels: contracts, and what a channel has to supply for them."""
