"""Whether two indexes of the same rows answer alike: questions made of the rows' own words, and a comparison."""
