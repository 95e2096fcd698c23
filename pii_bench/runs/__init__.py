"""Running systems over datasets, each response saved as it arrives."""
