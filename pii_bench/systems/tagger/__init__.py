"""BiLSTM-CRF (Huang et al. 2015): `train` and what it needs of torch, and what runs without."""
