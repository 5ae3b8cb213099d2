package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"hammerlock/topologies"
)

// expire ends the session of a lock's holder, which owns the first node in the lock's queue. No server command does
// that, but a client with the session's password can take the session over and close it.
func expire(ctx context.Context, n *topologies.Node, lock string) error {
	conn, _, err := zk.Connect([]string{n.Back()}, 4*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	owner, err := called(ctx, func() (int64, error) {
		all, _, err := conn.Children(directory(lock))
		if err != nil || len(all) == 0 {
			return 0, errors.Join(err, fmt.Errorf("no worker holds %s", lock))
		}
		first := slices.MinFunc(all, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		_, stat, err := conn.Get(path.Join(directory(lock), first))
		return stat.EphemeralOwner, err
	})
	if err != nil {
		return err
	}
	return ask(ctx, n, func(c net.Conn) error { return greet(c, owner, password(owner), 4*time.Second) })
}

// Parameters of a session's password: a secret, which is the same in all servers, and those of java.util.Random.
const (
	secret     = 0xB3415C00
	multiplier = 0x5DEECE66D
	increment  = 0xB
	mask       = 1<<48 - 1
)

// password is a session's password. See ZooKeeperServer.generatePasswd.
func password(id int64) []byte {
	seed := (id ^ secret ^ multiplier) & mask
	word := make([]byte, 0, 16)
	for len(word) < 16 {
		seed = (seed*multiplier + increment) & mask
		drawn := int32(seed >> 16)
		for range 4 {
			word = append(word, byte(drawn))
			drawn >>= 8
		}
	}
	return word
}
