"""Editions on their way between machines: pushed to a place that holds objects, followed from there.

DESTINATION/editions.note      what is published, signed (`engines.publication`)
DESTINATION/pool/ab/abcd...    everything else, each under its SHA-256: the list of all that was ever
                               published, and the files of the editions, their manifests among them
DESTINATION/open/...           the open Parquet files by name, for whoever reads them without the API
"""
