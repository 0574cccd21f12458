"""Editions between machines: pushed to a store of objects, and followed from there.

DESTINATION/editions.note      what is published, signed (`engines.publication`)
DESTINATION/pool/ab/abcd...    everything else, each under its SHA-256: the list of everything ever
                               published, and the files of the editions, their manifests among them
DESTINATION/deltas/NEW/OLD     the difference between two of these files (`replication.pool`)
DESTINATION/open/...           the open Parquet files by name, to be read without the API
"""
