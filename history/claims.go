package history

// Claims are a lock's promises, which checkers verify. AllClaims explains each.
type Claims struct {
	Excludes  bool `json:"excludes"`
	Expires   bool `json:"expires"`
	Owned     bool `json:"owned"`
	Fences    bool `json:"fences"`
	Ordered   bool `json:"ordered"`
	Reentrant bool `json:"reentrant"`
	Renews    bool `json:"renews"`
	Cleans    bool `json:"cleans"`
	Wakes     bool `json:"wakes,omitempty"`
	Sets      bool `json:"sets,omitempty"`
	Crosses   bool `json:"crosses,omitempty"`
	Readers   bool `json:"readers,omitempty"`
	Upgrades  bool `json:"upgrades,omitempty"`
	Writers   bool `json:"writers,omitempty"`
	Permits   int  `json:"permits,omitempty"` // the largest number held at once; 0 = no semaphore
	Begins    bool `json:"begins,omitempty"`
	Once      bool `json:"once,omitempty"`
}

// Alone reports whether at most one holder is allowed at a time.
func (c Claims) Alone() bool { return c.Excludes && !c.Readers && c.Permits == 0 }

// Complete adds the claims that follow from others: a lock with permits or readers excludes the other holders.
func (c *Claims) Complete() { c.Excludes = c.Excludes || c.Permits > 0 || c.Readers }

// Claim is a promise that a lock can make.
type Claim struct {
	Name   string              // in headers and in the driver protocol
	Says   string              // the promise
	Driver string              // the promise as the driver protocol states it; empty = drivers cannot claim it
	Flag   func(*Claims) *bool // the field of Claims; nil = it is no boolean
	// Made reports whether a lock makes this claim; nil = the Flag alone decides that.
	Made func(*Claims) bool
	// Judges are the checkers of the claim. The first one must pass. Nil = no checker judges it.
	Judges []string
	// Rest assigns to this claim every failure of its judges whose cause breaks no other claim of the lock.
	Rest     bool
	Causes   []string // causes of failure that break the claim
	Scenario string   // the only scenario that tests it; empty = any run does
	Told     bool     // the report adds how soon holders hear of a loss
}

// Of reports whether a lock with these claims makes this claim.
func (c *Claim) Of(made *Claims) bool {
	return c.Made != nil && c.Made(made) || c.Made == nil && *c.Flag(made)
}

var (
	exclusive = []string{"exclusion", Updates, "linearizable"}
	shared    = []string{DoubleGrant, ServiceLoss, SilentReacquire, FalseExtension, OverClaim, Overrun, Exclusion,
		NotLinearizable}
)

// AllClaims lists the claims for the driver protocol, conformance, the glossary and the documents.
var AllClaims = []Claim{
	{Name: "excludes", Says: "one holder at a time", Driver: "there is one holder at a time",
		Flag: func(c *Claims) *bool { return &c.Excludes }, Made: func(c *Claims) bool {
			return c.Excludes && c.Permits == 0
		},
		Judges: exclusive, Rest: true, Causes: shared},
	{Name: "permits", Says: "no more permits are held at once than there are",
		Made: func(c *Claims) bool { return c.Permits > 0 }, Judges: exclusive, Rest: true, Causes: shared},
	{Name: "readers", Says: "readers share it, and what they read does not change",
		Driver: "readers share it, and writers have it alone: every `acquire` has a `mode`, `read` or `write`",
		Flag:   func(c *Claims) *bool { return &c.Readers }, Judges: []string{Updates, "exclusion"},
		Causes: []string{ChangedRead}},
	{Name: "upgrades", Says: "a reader can become the writer, and no other comes between",
		Driver: "a reader can become the writer by the request `upgrade`, and no other comes between",
		Flag:   func(c *Claims) *bool { return &c.Upgrades }, Judges: exclusive, Scenario: "upgrade"},
	{Name: "writers", Says: "a writer that waits gets it although readers keep coming",
		Driver: "a writer that waits gets it although readers keep coming",
		Flag:   func(c *Claims) *bool { return &c.Writers }, Judges: []string{Liveness}, Scenario: "steady-readers",
		Causes: []string{Starved}},
	{Name: "expires", Says: "a hold ends when its lease is over, and not before",
		Driver: "a hold ends when its lease is over",
		Flag:   func(c *Claims) *bool { return &c.Expires }, Judges: []string{"lease-validity"}, Rest: true,
		Causes: []string{PrematureLoss, Deadlock, TTLTooLong}},
	{Name: "owned", Says: "only the owner can release, and gets the correct answer",
		Driver: "only the owner can release, and a release says whether the lock was still ours",
		Flag:   func(c *Claims) *bool { return &c.Owned }, Judges: []string{"release"}, Rest: true,
		Causes: []string{ForeignRelease, FalseRelease, DoubleRelease, FalseRefusal, EqualTokens}},
	{Name: "cleans", Says: "nothing stays in the servers of what was released or refused",
		Driver: "nothing stays in the servers of what was released or refused",
		Flag:   func(c *Claims) *bool { return &c.Cleans }, Judges: []string{Liveness},
		Causes: []string{Phantom, Leak, Leftover}},
	{Name: "fences", Says: "every grant has a greater fencing token",
		Driver: "every grant has a greater `fence` than all before",
		Flag:   func(c *Claims) *bool { return &c.Fences }, Judges: []string{"fencing"}, Rest: true,
		Causes: []string{StaleStore, Repeated, Regressed, NoToken}},
	{Name: "ordered", Says: "waiters are served in their order",
		Driver: "waiters are served in the order in which they came",
		Flag:   func(c *Claims) *bool { return &c.Ordered }, Judges: []string{Fairness}, Rest: true,
		Causes: []string{OutOfOrder}},
	{Name: "reentrant", Says: "a holder can acquire again", Driver: "a holder can acquire again",
		Flag: func(c *Claims) *bool { return &c.Reentrant }, Judges: []string{"reentrancy"}, Rest: true,
		Causes: []string{WrongCount, TokenChanged, SelfRefusal}},
	{Name: "renews", Says: "a lease is renewed until it is released, or its holder hears of the loss",
		Driver: "the library extends the lease until the release. Without `valid_ms` the holder believes in it " +
			"until the event `lost`",
		Flag: func(c *Claims) *bool { return &c.Renews }, Judges: []string{"lease-validity"}, Told: true,
		Causes: []string{RenewalFailure}},
	{Name: "wakes", Says: "a release wakes who waits", Driver: "a release wakes who waits",
		Flag: func(c *Claims) *bool { return &c.Wakes }, Judges: []string{Liveness}, Causes: []string{LostWakeup}},
	{Name: "sets", Says: "several keys are taken in one call, all of them or none",
		Driver: "`acquire` takes several `keys`, all of them or none, and `extend` and `release` are of all of them",
		Flag:   func(c *Claims) *bool { return &c.Sets }, Judges: []string{Liveness, "exclusion"},
		Causes: []string{PartKept}},
	{Name: "crosses", Says: "callers who name the same keys in another order do not block each other",
		Driver: "callers who name the same keys in another order do not block each other (with `sets`)",
		Flag:   func(c *Claims) *bool { return &c.Crosses }, Judges: []string{Liveness}, Causes: []string{Crossing},
		Scenario: "crossing"},
	{Name: "once",
		Says: "a job runs once a tick, whose name is the key: no release ends a lease, and no tick is left out",
		Driver: "a job runs once a tick, whose name is the key: no release ends a lease, and the first to ask " +
			"for a tick gets it for the lease that was asked for",
		Flag: func(c *Claims) *bool { return &c.Once }, Judges: []string{"once"}, Rest: true,
		Causes: []string{RunTwice, LeftOut}},
	{Name: "serves", Says: "who waits is granted the lock when it is free",
		Made: func(c *Claims) bool { return !c.Once }, Judges: []string{Liveness, Calls}, Rest: true,
		Causes: []string{Unanswered, HungCall, Stuck, Storm, Panicked, ClientLeak}},
	{Name: "begins",
		Says: "a lease may begin before it is asked for, and is good for the deadline that its holder is told",
		Driver: "a lease may begin before it is asked for, as one that counts from the waiter's place in a queue: " +
			"it is good for the " +
			"`valid_ms` that every grant has to tell", Flag: func(c *Claims) *bool { return &c.Begins }},
}
