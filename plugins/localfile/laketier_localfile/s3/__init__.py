"""Tables in a store that speaks S3: the same manifests, published by conditional put, through the library obstore."""
