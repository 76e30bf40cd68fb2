-- SPDX-License-Identifier: GPL-3.0-or-later
-- A ledger as version 1.0.0 wrote it, into SQLite and into PostgreSQL alike.
CREATE TABLE IF NOT EXISTS infrastructure_services_entry (base_url TEXT NOT NULL, resource TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('intent', 'done', 'accepted', 'unknown')), sent TEXT NOT NULL, asset TEXT NOT NULL, changed_at TEXT NOT NULL, PRIMARY KEY (base_url, resource, name));
CREATE TABLE IF NOT EXISTS infrastructure_services_schema (version INTEGER PRIMARY KEY);
INSERT INTO infrastructure_services_schema VALUES (1) ON CONFLICT DO NOTHING;
INSERT INTO infrastructure_services_entry VALUES ('https://s', 'compute_virtual_machine', 'web01', 'done', '{"name": "web01", "attributes": {"cpu": 4}}', '{"id": "id-1", "name": "web01", "attributes": {"cpu": 4}}', '2026-01-02T03:04:05Z');
INSERT INTO infrastructure_services_entry VALUES ('https://s', 'compute_virtual_machine', 'web02', 'unknown', '{"name": "web02"}', '{}', '2026-01-02T03:04:06Z');
INSERT INTO infrastructure_services_entry VALUES ('https://[0::1]/%7eus%2fer', 'compute_virtual_machine', 'web03', 'done', '{"name": "web03"}', '{"id": "id-3"}', '2026-01-02T03:04:07Z');
INSERT INTO infrastructure_services_entry VALUES ('https://t.example.', 'compute_virtual_machine', 'web04', 'intent', '{"name": "web04"}', '{}', '2026-01-02T03:04:09Z');
INSERT INTO infrastructure_services_entry VALUES ('https://t.example', 'compute_virtual_machine', 'web04', 'done', '{"name": "web04"}', '{"id": "id-4"}', '2026-01-02T03:04:08Z');
INSERT INTO infrastructure_services_entry VALUES ('https://t.example.', 'cassandra_application_role', 'role-1', 'done', '{"login": true}', '{"id": "newer"}', '2026-01-02T03:04:11Z');
INSERT INTO infrastructure_services_entry VALUES ('https://t.example', 'cassandra_application_role', 'role-1', 'done', '{"login": true}', '{"id": "older"}', '2026-01-02T03:04:10Z');
