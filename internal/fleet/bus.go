package fleet

import (
	"crypto/tls"
	"encoding/hex"
	"time"

	"github.com/nats-io/nats.go"
)

// Login is how a NATS server is entered. The zero value is for that in the coordinator, which the token opens.
type Login struct {
	Creds string // a file of credentials for existing servers, which have TLS
	CA    string // a file of the authorities of these servers' certificates; empty = the system's
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

// bus is a connection to a NATS server. Others may use that, too: all subjects begin with the name of the fleet, which
// follows from its token.
type bus struct {
	*nats.Conn
	fleet string
}

// connect makes a connection that comes back when the server does. Messages that cannot be sent meanwhile are not kept.
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

// Publish is that of the connection, within the fleet.
func (b *bus) Publish(subject string, data []byte) error {
	return b.Conn.Publish(b.fleet+subject, data)
}

// Request is that of the connection, within the fleet.
func (b *bus) Request(subject string, data []byte, within time.Duration) (*nats.Msg, error) {
	return b.Conn.Request(b.fleet+subject, data, within)
}

// Subscribe is that of the connection, within the fleet.
func (b *bus) Subscribe(subject string, take nats.MsgHandler) (*nats.Subscription, error) {
	return b.Conn.Subscribe(b.fleet+subject, take)
}
