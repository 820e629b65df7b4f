TRUNCATE soak.refused;
