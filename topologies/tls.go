package topologies

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// TLS has the certificates for secured connections, as PEM texts. It is plain data, so that it can be sent to worker
// processes.
type TLS struct {
	CA   []byte `json:"ca,omitempty"` // empty = the authorities that the system trusts
	Cert []byte `json:"cert,omitempty"`
	Key  []byte `json:"key,omitempty"`
	// the name in the servers' certificates; empty = the host of the address
	ServerName string `json:"server_name,omitempty"`
}

// Check is an error if the texts are no certificates and no key.
func (t *TLS) Check() error {
	_, err := t.config()
	return err
}

// config reads the texts.
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

// secure makes TLS of a connection to an address; if c is nil, it returns the connection unchanged.
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

// tlsClient is the client's side of a TLS connection to the server with that announced address.
func tlsClient(c *tls.Config, conn net.Conn, addr string) *tls.Conn {
	if c.ServerName == "" {
		c = c.Clone()
		c.ServerName, _ = splitAddr(addr)
	}
	return tls.Client(conn, c)
}
