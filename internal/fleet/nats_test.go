package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"hammerlock/internal/live"
)

// authority returns a self-signed certificate for servers on loopback, and the file with which clients verify it.
func authority(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// account lets the users of one account use a server. It returns the credentials file of one user.
func account(t *testing.T, o *server.Options) (creds string) {
	t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		k, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := k.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return k, public
	}
	operator, operatorID := pair(nkeys.CreateOperator)
	account, accountID := pair(nkeys.CreateAccount)
	user, userID := pair(nkeys.CreateUser)
	claims := jwt.NewOperatorClaims(operatorID)
	_, err := claims.Encode(operator)
	accountJWT, err2 := jwt.NewAccountClaims(accountID).Encode(operator)
	userJWT, err3 := jwt.NewUserClaims(userID).Encode(account)
	seed, err4 := user.Seed()
	text, err5 := jwt.FormatUserConfig(userJWT, seed)
	resolver := &server.MemAccResolver{}
	o.TrustedOperators, o.AccountResolver = []*jwt.OperatorClaims{claims}, resolver
	creds = filepath.Join(t.TempDir(), "user.creds")
	if err := errors.Join(err, err2, err3, err4, err5, resolver.Store(accountID, accountJWT),
		os.WriteFile(creds, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return creds
}

// foreignServer returns a NATS server that is not the coordinator's. It is not started yet.
func foreignServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// TestServersOfOthers joins coordinators and agents on a NATS server of others, with TLS and credentials. The server
// is restarted during the run, and nothing is lost. Another fleet on it hears nothing of this fleet. A client that
// does not trust the server, or that the server does not know, is not admitted.
func TestServersOfOthers(t *testing.T) {
	t.Parallel()
	cert, ca := authority(t)
	o := server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, TLS: true,
		TLSTimeout: 10}
	login := Login{Creds: account(t, &o), CA: ca}
	first := foreignServer(t, o)
	first.Start()
	if !first.ReadyForConnections(serverTimeout) {
		t.Fatal("the NATS server does not start")
	}
	o.Port = first.Addr().(*net.TCPAddr).Port
	second := foreignServer(t, o)
	url := "tls://" + first.Addr().String()
	b := coordinator(t, func(o *Options) { o.NATS, o.Login = url, login })
	enter := func(o *AgentOptions) { o.Join, o.Login = url, login }
	b.join("a", enter)
	b.join("b", enter)
	b.join("c", func(o *AgentOptions) { enter(o); o.Token = "of another fleet on the same server" })
	h, report := b.play(func(p *playing) {
		first.Shutdown()
		first.WaitForShutdown()
		down := p.Clock.Now()
		live.Wait(t, "a while", func() bool { return p.Clock.Now() > down+300*time.Millisecond })
		second.Start()
		p.by(1, down)
		p.by(2, down)
	})
	b.whole(h, &report)
	b.until("done; ")
	if n := len(b.present()); n != 2 {
		t.Errorf("%d agents are there, want 2", n)
	}
	for name, l := range map[string]Login{
		"an unknown server":    {Creds: login.Creds},
		"no credentials":       {Creds: ca, CA: ca},
		"with a token of ours": {},
	} {
		if _, err := connect(url, "x", b.token, l); err == nil {
			t.Errorf("%s: let in", name)
		}
	}
}
