module driver

go 1.26.0

require github.com/hibiken/asynq v0.17.0

require (
	github.com/go-redis/redis/v7 v7.4.0 // indirect
	github.com/google/uuid v1.1.1 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	github.com/spf13/cast v1.3.1 // indirect
	golang.org/x/sys v0.0.0-20191204072324-ce4227a45e2e // indirect
	golang.org/x/time v0.0.0-20190308202827-9d24e82272b4 // indirect
)
