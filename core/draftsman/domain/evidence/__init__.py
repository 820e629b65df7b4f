"""Evidence of published work: findings about its tests, signed statements. Pure."""
