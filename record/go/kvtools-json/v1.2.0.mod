module driver

go 1.26.0

require (
	github.com/kvtools/redis v1.2.0
	github.com/kvtools/valkeyrie v1.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/redis/go-redis/v9 v9.7.0 // indirect
)
