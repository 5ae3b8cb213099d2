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

// Token is what coordinator and agents share. The key of the coordinator's certificate follows from it, so that each
// side knows the other without an authority: agents accept no other key, and the coordinator lets nobody in without the
// token.
type Token string

// leastToken is how long a token must be: whoever sees the certificate could try short ones.
const leastToken = 20

// NewToken draws a token.
func NewToken() Token { return Token(rand.Text()) }

// ReadToken reads a token from the first line of a file.
func ReadToken(path string) (Token, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return ParseToken(line)
}

// ParseToken checks a token.
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

// password is what agents say to be let in.
func (t Token) password() string { return hex.EncodeToString(t.derive("password")) }

func (t Token) key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(t.derive("key")) }

// server is the coordinator's side of TLS.
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

// client is an agent's side of TLS. The key takes the place of names and authorities.
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
