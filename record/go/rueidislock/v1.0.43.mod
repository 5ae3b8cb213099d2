module driver

go 1.26.0

require github.com/redis/rueidis v1.0.43

require golang.org/x/sys v0.19.0 // indirect
