module driver

go 1.26.0

require github.com/valkey-io/valkey-go v1.0.60

require golang.org/x/sys v0.31.0 // indirect
