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

// Site is a place where a lock can live independently of others: one server, a primary with replicas, or a cluster.
type Site struct {
	Name    string
	Master  string // name of the primary in the sentinels' configuration
	Cluster bool
	Nodes   []*Node // nodes with the site's data

	access Access // settings of clients; the method Access adds the addresses
	seeds  []*Node
	// current primary, if only an operator moves it; else nil
	byHand atomic.Pointer[Node]
	// line simulates the network cable of this process; nil = it is never unplugged.
	line *Line
	tls  *tls.Config // of access.TLS
	// dial function for servers in memory; nil = use the network
	via func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Addrs returns the addresses that clients are configured with: those of the sentinels, or the current primary's if
// only an operator moves it, or those of the servers.
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

// Copies returns the number of replicas with which each primary was started.
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

// Password returns the password of clients.
func (s *Site) Password() string { return s.access.Password }

// Engine returns the name of the database engine; empty = Redis. Client works for Redis only: locks on other engines
// make their own client with Dialer.
func (s *Site) Engine() string { return s.access.Engine }

// SentinelLogin returns user and password for the sentinels.
func (s *Site) SentinelLogin() (user, password string) {
	return s.access.Sentinel[0], s.access.Sentinel[1]
}

// ClientOptions has the settings in which the clients of a run differ. The method Site.Client avoids the traps of
// the library's defaults:
//   - a retried command may be executed twice and report the second outcome, so nothing is retried;
//   - reads ignore context deadlines by default, so ContextTimeoutEnabled is set;
//   - a cluster client may stay on a dead node for a minute, so it reloads its map often;
//   - a full pool of failed dials blocks dialling for a second, so the pool is large.
type ClientOptions struct {
	Name   string
	Source int // proxies know the client as ClientParty(Source); 1 or more
	// ReadTimeout is the time limit for a reply; 0 = one second. The limit for connecting is at least as long.
	ReadTimeout time.Duration
	Traffic     *Traffic // counts round trips; may be nil
	// LibraryRetries leaves the library's retries on, to test that the suite finds the bug that they cause.
	LibraryRetries bool
	Protocol       int // version of RESP, 2 or 3; 0 = 2

	passes bool // replies of any length are allowed, because they are forwarded or skipped and not stored
}

// These settings are the same for all clients. They are in the run record.
const (
	clientReadTimeout  = time.Second
	clientDialTimeout  = 300 * time.Millisecond
	foreignDialTimeout = 2 * time.Second // for attached servers, which may be far away
	clientReload       = 200 * time.Millisecond
	clientPoolSize     = 2000
	// clientBufferSize is small: lock commands are short, and clients open thousands of connections a second when a
	// server does not answer.
	clientBufferSize   = 4 << 10
	clientMaxRedirects = 3
)

// The suite's own clients use contexts with deadlines. These timeouts are for contexts without one.
const (
	controlReadTimeout = 20 * time.Second
	controlDialTimeout = 5 * time.Second
)

// dialTimeout returns the time limit for connecting, including the handshake.
func (s *Site) dialTimeout(o ClientOptions) time.Duration {
	if s.access.Foreign {
		return max(foreignDialTimeout, o.ReadTimeout)
	}
	return max(clientDialTimeout, o.ReadTimeout)
}

// ClientSettings lists the settings that all clients have in common, for the run record. If the suite makes no such
// clients, the map is empty, not nil.
func (t *Topology) ClientSettings() map[string]string {
	if len(t.Sites) == 0 || t.Sites[0].Engine() != "" {
		// the suite makes no clients: a service is under test, or the locks have their own clients
		return map[string]string{}
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
		"Protocol":                      "2; 3 in every second process of a run that is judged",
		"DisableIdentity":               "true",
		"MaintNotificationsConfig.Mode": "disabled",
	}
}

// Client makes a client for the site, which the caller must close. It returns nil if the servers are not Redis.
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
		ClientName: o.Name, Protocol: cmp.Or(o.Protocol, 2), DisableIdentity: true,
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

// controlOptions describe the connection of a control client.
type controlOptions struct {
	addr      string // address that the server announces
	to        string // address to dial; empty = addr
	login     Login
	db        int
	tls       *tls.Config
	clustered bool
}

// newControl makes a client with which the suite controls one server. It uses no proxy. In a cluster it may read from
// replicas, which redirect other clients to their primary.
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
			f.used.Store(true) // errors are returned unmarked: see fresh
			return f.checked(), nil
		}
	}
	if to.clustered {
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error { return conn.Do(ctx, "READONLY").Err() }
	}
	return redis.NewClient(o)
}

// once is a client hook that stops a cluster client from repeating a command after a lost reply. MaxRedirects = 0
// would stop this too, but the client could not follow MOVED and ASK.
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

// quiet turns off the library's global logger, which writes to standard error.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func splitAddr(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr)
	return host, port
}
