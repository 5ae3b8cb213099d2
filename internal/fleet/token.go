package fleet

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"
)

// Token is a secret that coordinator and agents share. The key of the coordinator's certificate is derived from it, so
// no certificate authority is needed. Agents accept no other key, and the coordinator admits no agent without the
// token.
type Token string

// leastToken is the shortest length of a token. A shorter token could be guessed from the certificate.
const leastToken = 20

// NewToken draws a random token.
func NewToken() Token { return Token(rand.Text()) }

func ReadToken(path string) (Token, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return ParseToken(line)
}

// ParseToken checks the length of a token.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	if len(text) < leastToken {
		return "", fmt.Errorf("a token has at least %d characters; to draw one: openssl rand -hex 24", leastToken)
	}
	return Token(text), nil
}

func (t Token) derive(what string) []byte {
	sum := sha256.Sum256([]byte("hammerlock fleet " + what + "\x00" + string(t)))
	return sum[:]
}

// password returns the agents' password at the NATS server.
func (t Token) password() string { return hex.EncodeToString(t.derive("password")) }

func (t Token) key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(t.derive("key")) }

func (t Token) server() (*tls.Config, error) {
	key := t.key()
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0),
		NotAfter: now.AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion: tls.VersionTLS13}, nil
}

var errToken = errors.New("the coordinator has another token")

// client returns an agent's TLS configuration. It checks the key instead of names and authorities.
func (t Token) client() *tls.Config {
	want, _ := t.key().Public().(ed25519.PublicKey)
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			got, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || !bytes.Equal(got, want) {
				return errToken
			}
			return nil
		},
	}
}
