"""The documents of docs/, to be read and searched in the product."""
