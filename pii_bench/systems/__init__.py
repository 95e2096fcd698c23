"""Systems under test: each answers samples, whatever it is made of."""
