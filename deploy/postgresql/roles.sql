-- Three roles with least privilege. Run as a superuser in the database of the service:
--
--   psql -d sankofa -v ON_ERROR_STOP=1 -f roles.sql
--   SANKOFA_DATASTORE=postgresql://sankofa_publish@.../sankofa sankofa ledger verify   (creates the ledger)
--   psql -d sankofa -v ON_ERROR_STOP=1 -f roles.sql                                    (again: grants on its tables)
--
-- You can run it any number of times. Give each role a password or a certificate, as pg_hba.conf requires.

DO $$
BEGIN
    IF to_regrole('sankofa_publish') IS NULL THEN CREATE ROLE sankofa_publish LOGIN; END IF;
    IF to_regrole('sankofa_ingest') IS NULL THEN CREATE ROLE sankofa_ingest LOGIN; END IF;
    IF to_regrole('sankofa_api') IS NULL THEN CREATE ROLE sankofa_api LOGIN; END IF;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO sankofa_publish, sankofa_ingest, sankofa_api', current_database());
    -- publish: owns the ledger and the objects of editions
    EXECUTE format('GRANT CREATE, TEMPORARY ON DATABASE %I TO sankofa_publish', current_database());
    -- ingest: stages rows in temporary tables
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO sankofa_ingest', current_database());
END $$;

-- The first publication creates the schema of objects. The API may read it.
ALTER DEFAULT PRIVILEGES FOR ROLE sankofa_publish GRANT USAGE ON SCHEMAS TO sankofa_api;
ALTER DEFAULT PRIVILEGES FOR ROLE sankofa_publish GRANT SELECT ON TABLES TO sankofa_api;

DO $$
BEGIN
    IF to_regnamespace('sankofa_ledger') IS NOT NULL THEN
        -- Append-only: no UPDATE, DELETE or TRUNCATE. Triggers refuse these to everybody as well.
        GRANT USAGE ON SCHEMA sankofa_ledger TO sankofa_ingest;
        GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA sankofa_ledger TO sankofa_ingest;
        -- The API reads editions and nothing of the ledger.
        REVOKE ALL ON ALL TABLES IN SCHEMA sankofa_ledger FROM sankofa_api;
        REVOKE ALL ON SCHEMA sankofa_ledger FROM sankofa_api;
    END IF;
END $$;
