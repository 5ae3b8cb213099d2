package topologies

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// TLS has the certificates for encrypted connections, in PEM. It is plain data, so it can be sent to worker
// processes.
type TLS struct {
	CA   []byte `json:"ca,omitempty"` // certificate authorities; empty = those of the system
	Cert []byte `json:"cert,omitempty"`
	Key  []byte `json:"key,omitempty"`
	// ServerName is the name in the servers' certificates; empty = the host of the address.
	ServerName string `json:"server_name,omitempty"`
}

// Check returns an error if the texts are not valid certificates and a key.
func (t *TLS) Check() error {
	_, err := t.config()
	return err
}

func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if len(t.CA) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil,
				errors.New("--tls-ca: the file has no certificate of an authority (-----BEGIN CERTIFICATE-----)")
		}
	}
	if len(t.Cert)+len(t.Key) > 0 {
		pair, err := tls.X509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// secure returns a TLS connection over conn. If c is nil, it returns conn itself.
func secure(ctx context.Context, c *tls.Config, conn net.Conn, addr string) (net.Conn, error) {
	if c == nil {
		return conn, nil
	}
	secured := tlsClient(c, conn, addr)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
			err = fmt.Errorf("%w; --tls-ca FILE names an authority of your own", err)
		}
		return nil, fmt.Errorf("TLS with %s: %w", addr, err)
	}
	return secured, nil
}

// tlsClient returns the client's side of a TLS connection to the server that announces addr.
func tlsClient(c *tls.Config, conn net.Conn, addr string) *tls.Conn {
	if c.ServerName == "" {
		c = c.Clone()
		c.ServerName, _ = splitAddr(addr)
	}
	return tls.Client(conn, c)
}
