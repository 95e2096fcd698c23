"""The web application: annotate, review and mask in the browser, and the API."""
