// Package cluster tests several gateways that share a PostgreSQL server with two synchronous standbys, while
// gateways, the primary and the network between them fail. All of them are processes of their own.
package cluster
