"""Editions on their way between machines: pushed to a place that holds objects, followed from there.

DESTINATION/current.json       the pointer: the digest of the index
DESTINATION/pool/ab/abcd...    everything else, each under its SHA-256: the index, the list of files of each
                               edition, and the files
DESTINATION/open/...           the open Parquet files by name, for whoever reads them without the API
"""
