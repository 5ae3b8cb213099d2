package fleet

import (
	"crypto/tls"
	"encoding/hex"
	"time"

	"github.com/nats-io/nats.go"
)

// Login is the login at a NATS server. The zero value is for the coordinator's own server, which needs only the token.
type Login struct {
	Creds string // credentials file for existing servers, which must use TLS
	CA    string // file with certificate authorities for existing servers; empty = those of the system
}

func (l *Login) options(t Token) []nats.Option {
	if l.Creds == "" {
		return []nats.Option{nats.Token(t.password()), nats.Secure(t.client())}
	}
	o := []nats.Option{nats.UserCredentials(l.Creds), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12})}
	if l.CA != "" {
		o = append(o, nats.RootCAs(l.CA))
	}
	return o
}

// bus is a connection to a NATS server that may have other users. All subjects begin with the fleet's name, which is
// derived from its token.
type bus struct {
	*nats.Conn
	fleet string
}

// connect opens a connection that reconnects. Messages that are sent while it is broken are dropped.
func connect(url, name string, t Token, l Login, more ...nats.Option) (*bus, error) {
	options := append(l.options(t), nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(3), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	nc, err := nats.Connect(url, append(options, more...)...)
	if err != nil {
		return nil, err
	}
	return &bus{nc, "hammerlock." + hex.EncodeToString(t.derive("name")[:8]) + "."}, nil
}

func (b *bus) Publish(subject string, data []byte) error {
	return b.Conn.Publish(b.fleet+subject, data)
}

func (b *bus) Request(subject string, data []byte, within time.Duration) (*nats.Msg, error) {
	return b.Conn.Request(b.fleet+subject, data, within)
}

func (b *bus) Subscribe(subject string, take nats.MsgHandler) (*nats.Subscription, error) {
	return b.Conn.Subscribe(b.fleet+subject, take)
}
