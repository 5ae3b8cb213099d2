package topologies

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Site is one independent place a lock can live.
type Site struct {
	Name    string
	Master  string // the name that sentinels know the primary by
	Cluster bool
	Nodes   []*Node // the nodes that hold its data

	access Access // the rest of what its clients need: Access completes it
	seeds  []*Node
	// the primary, where only an operator moves it
	byHand atomic.Pointer[Node]
	// that connections go over; nil = they are not cut
	line *Line
	tls  *tls.Config // of access.TLS
	// makes its connections; nil = the network does
	via func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Addrs are the addresses that a client is given: of the sentinels if there are any, of the present primary
// where it is moved by hand.
func (s *Site) Addrs() []string {
	if n := s.byHand.Load(); n != nil {
		return []string{n.front}
	}
	var a []string
	for _, n := range s.seeds {
		a = append(a, n.front)
	}
	return a
}

// Copies is how many replicas each of its primaries was brought up with.
func (s *Site) Copies() int {
	if len(s.Nodes) == 0 {
		return s.access.Copies
	}
	primaries := 0
	for _, n := range s.Nodes {
		if n.Role == Primary {
			primaries++
		}
	}
	return len(s.Nodes)/max(primaries, 1) - 1
}

// Password is what its clients log in with. Access has their user and their database, too.
func (s *Site) Password() string { return s.access.Password }

// Engine is the name of its servers; empty for Redis. Sites of others have no Client: their locks make connections with
// Dialer.
func (s *Site) Engine() string { return s.access.Engine }

// SentinelLogin is the user and the password of its sentinels.
func (s *Site) SentinelLogin() (user, password string) {
	return s.access.Sentinel[0], s.access.Sentinel[1]
}

// ClientOptions are what differs between the clients of a run. Client makes all clients, so that the traps of the
// library's defaults are avoided in one place:
//   - a retried command can be executed twice and report the second outcome, so nothing is retried;
//   - context deadlines are ignored while reading unless asked for, so they are asked for;
//   - a cluster client may stay on a dead node for a minute, so it reloads its map often;
//   - a full pool of failed dials blocks dialling for a second, so the pool is large.
type ClientOptions struct {
	Name        string
	Source      int           // 1 or more: links identify the client as ClientParty(Source)
	ReadTimeout time.Duration // for a reply, and for a connection if it is longer than that has; one second if zero
	Traffic     *Traffic      // counts, if not nil
	// LibraryRetries leaves the library's own retry policy on: the bug that the suite must find.
	LibraryRetries bool

	passes bool // answers are passed on or skipped, whatever their size
}

// The settings that all clients share; they stand in the run record.
const (
	clientReadTimeout  = time.Second
	clientDialTimeout  = 300 * time.Millisecond
	foreignDialTimeout = 2 * time.Second // to servers of others, which may be far away
	clientReload       = 200 * time.Millisecond
	clientPoolSize     = 2000
	// commands are short; a server that is late costs a client thousands of connections a second
	clientBufferSize   = 4 << 10
	clientMaxRedirects = 3
)

// Those who ask on the suite's own connections bound what they ask for; these end what is unbounded.
const (
	controlReadTimeout = 20 * time.Second
	controlDialTimeout = 5 * time.Second
)

// dialTimeout bounds how long a connection to the site may take, with all that belongs to it. A client that waits
// longer for replies waits as long.
func (s *Site) dialTimeout(o ClientOptions) time.Duration {
	if s.access.Foreign {
		return max(foreignDialTimeout, o.ReadTimeout)
	}
	return max(clientDialTimeout, o.ReadTimeout)
}

// ClientSettings names the settings of all clients, for the run record.
func (t *Topology) ClientSettings() map[string]string {
	if len(t.Sites) == 0 || t.Sites[0].Engine() != "" {
		return nil // a service is visited, or locks have clients of their own
	}
	return map[string]string{
		"library":                       "go-redis " + redis.Version(),
		"MaxRetries":                    "-1",
		"ContextTimeoutEnabled":         "true",
		"DialTimeout":                   t.Sites[0].dialTimeout(ClientOptions{}).String(),
		"DialerRetries":                 "1",
		"ReadTimeout":                   clientReadTimeout.String(),
		"PoolSize":                      strconv.Itoa(clientPoolSize),
		"ReadBufferSize":                strconv.Itoa(clientBufferSize),
		"WriteBufferSize":               strconv.Itoa(clientBufferSize),
		"MaxRedirects":                  strconv.Itoa(clientMaxRedirects) + " (MOVED and ASK only)",
		"ClusterStateReloadInterval":    clientReload.String(),
		"Protocol":                      "2",
		"DisableIdentity":               "true",
		"MaintNotificationsConfig.Mode": "disabled",
	}
}

// Client makes a client for the site, which the caller closes; nil if its servers are not Redis.
func (s *Site) Client(o ClientOptions) redis.UniversalClient {
	if s.Engine() != "" {
		return nil
	}
	quiet()
	var c redis.UniversalClient
	switch {
	case s.Cluster:
		options := s.options(o).Cluster()
		options.MaxRetries, options.ClusterStateReloadInterval, options.DisableRoutingPolicies = 0, clientReload, true
		cc := redis.NewClusterClient(options)
		cc.OnNewNode(func(node *redis.Client) { node.AddHook(dialing{}) })
		c = cc
	case s.Master != "":
		c = redis.NewFailoverClient(s.options(o).Failover())
	default:
		c = redis.NewClient(s.options(o).Simple())
	}
	c.AddHook(dialing{})
	if s.Cluster && !o.LibraryRetries {
		c.AddHook(once{})
	}
	return c
}

func (s *Site) options(o ClientOptions) *redis.UniversalOptions {
	sentinelUser, sentinelPassword := s.SentinelLogin()
	u := &redis.UniversalOptions{
		Dialer: s.dialer(o), Addrs: s.Addrs(), MasterName: s.Master, Username: s.access.User,
		Password: s.access.Password, DB: s.access.DB,
		SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword,
		ClientName: o.Name, Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, MaxRedirects: clientMaxRedirects, ContextTimeoutEnabled: true, PoolSize: clientPoolSize,
		DialTimeout: s.dialTimeout(o), DialerRetries: 1, ReadTimeout: cmp.Or(o.ReadTimeout, clientReadTimeout),
		ReadBufferSize: clientBufferSize, WriteBufferSize: clientBufferSize,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.LibraryRetries {
		u.MaxRetries = 0 // the library's default
	}
	return u
}

// controlOptions say where a control client leads.
type controlOptions struct {
	addr      string // as the server announces it
	to        string // where it is from here, if that is elsewhere
	login     Login
	db        int
	tls       *tls.Config
	clustered bool
}

// newControl makes the suite's own client of one server: small, and not through a link. It may read from replicas of a
// cluster, which would redirect it to their primary otherwise.
func newControl(to controlOptions) *redis.Client {
	quiet()
	o := &redis.Options{
		Addr: to.addr, Username: to.login.user, Password: to.login.password, DB: to.db, Protocol: 2,
		DisableIdentity: true, MaxRetries: -1, PoolSize: 4,
		ContextTimeoutEnabled: true, DialTimeout: controlDialTimeout, DialerRetries: 1, ReadTimeout: controlReadTimeout,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if to.to != "" {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			d := &net.Dialer{Timeout: foreignDialTimeout}
			conn, err := d.DialContext(ctx, network, to.to)
			if err != nil {
				return nil, err
			}
			if conn, err = secure(ctx, to.tls, conn, addr); err != nil {
				return nil, err
			}
			f := &fresh{Conn: conn, bounded: true}
			f.used.Store(true) // its errors are told as they are
			return f.checked(), nil
		}
	}
	if to.clustered {
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error { return conn.Do(ctx, "READONLY").Err() }
	}
	return redis.NewClient(o)
}

// once keeps a cluster client from repeating a command after a lost reply. MaxRedirects cannot do that: it also bounds
// MOVED and ASK, which must be followed.
type once struct{ passing }

type unrepeatable struct{ redis.Cmder }

func (unrepeatable) NoRetry() bool { return true }

func (once) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, unrepeatable{cmd}) }
}

func (once) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		wrapped := make([]redis.Cmder, len(cmds))
		for i, cmd := range cmds {
			wrapped[i] = unrepeatable{cmd}
		}
		return next(ctx, wrapped)
	}
}

// quiet silences the library's logger, which is global and writes to standard error.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func splitAddr(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}
