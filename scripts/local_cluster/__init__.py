"""A cluster of three machines on this one: network namespaces with etcd, Patroni, NATS, haproxy and the service."""
