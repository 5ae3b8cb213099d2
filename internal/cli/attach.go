package cli

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hammerlock/internal/attach"
	"hammerlock/internal/settings"
	"hammerlock/topologies"
)

// Arguments returns the arguments of the process without passwords. It also overwrites the passwords in the memory of
// the process, because every user of the machine can read command lines (/proc/PID/cmdline).
func Arguments(args []string) []string { return attach.Hide(args) }

// Environment removes passwords from the environment, so that child processes do not inherit them. It returns a
// replacement for os.Getenv that still knows them.
func Environment() func(string) string { return attach.HideEnvironment() }

// addrFlag is the flag with the address of an existing deployment, which are servers that the suite did not start.
// The other flags of its section have no meaning without it.
const addrFlag = "addr"

func (o *options) attachFlags() {
	a := &o.plan.Attach
	a.Prefix = cmp.Or(a.Prefix, topologies.DefaultPrefix)
	o.Add(flag(setting, addrFlag,
		"work on servers that are up already, and start nothing: host:port, redis://user:password@host:port/db,\n"+
			"rediss://...; several for sentinels, a cluster's seeds, replicas, or redlock: "+
			"--topology says what they are.\n"+
			"User and password also from $HAMMERLOCK_REDIS_USER and $HAMMERLOCK_REDIS_PASSWORD; see docs/ATTACH.md"),
		"url,...", strings.Join(a.Addrs, ","), func(text string) error {
			a.Addrs = settings.Split(text)
			if len(a.Addrs) == 0 {
				return errors.New("no address")
			}
			return nil
		})
	o.Text(flag(setting, "user", "with --addr: the user"), "name", &a.User)
	o.Text(flag(setting, "password-file", "with --addr: a file with the password"), "path", &a.PasswordFile)
	o.Text(flag(setting, "master", "with --addr of sentinels: the name that they know the primary by"), "name",
		&a.Master)
	o.Text(flag(setting, "sentinel-user", "with --addr of sentinels: their own user"), "name", &a.SentinelUser)
	o.Text(flag(setting, "sentinel-password-file", "with --addr of sentinels: a file with their own password"), "path",
		&a.SentinelPasswordFile)
	o.Text(flag(setting, "tls-ca", "with rediss://: certificates of the authorities (default: the system's)"), "path",
		&a.CA)
	o.Text(flag(setting, "tls-cert", "with rediss://: the certificate of the client"), "path", &a.Cert)
	o.Text(flag(setting, "tls-key", "with rediss://: the key of the client's certificate"), "path", &a.Key)
	o.Text(flag(setting, "tls-server-name",
		"with rediss://: the name in the servers' certificates (default: the host)"), "name", &a.ServerName)
	o.Add(flag(setting, "map",
		"with --addr: announced addresses and where they are from here, as in 10.0.0.3:6379=localhost:7003"),
		"a=b,...", strings.Join(a.Map, ","), func(text string) error { a.Map = settings.Split(text); return nil })
	o.Text(flag(setting, "prefix",
		"with --addr: what the names of all keys begin with; braces make a cluster's hash tag"), "text", &a.Prefix)
	o.Names(flag(setting, "allow-destructive", "with --addr: what may be sent although it can harm others:\n"+
		strings.Join(topologies.DestructiveNames(), ", ")), &a.Allow, topologies.DestructiveNames())
}

// unattached reports flags about an existing deployment if --addr is missing, both on the command line and in args.
// The argument args has the sides of a comparison, which may set "addr=...".
func (o *options) unattached(args []string) {
	named := func(arg string) bool { return strings.Contains(arg, addrFlag+"=") }
	if o.Value(addrFlag) == nil || o.Flags.Changed(addrFlag) || slices.ContainsFunc(args, named) {
		return
	}
	settings.In(o.Flags, attachSection.Name).VisitAll(func(f *pflag.Flag) {
		if o.Differs(f.Name) {
			const text = ": it is about servers that are up already, and without --%s new ones are started"
			o.Mistake(f.Name, text, addrFlag)
		}
	})
}

// resolveAttached writes the topology and counter that the suite found out into their flags, so that "bench plan"
// prints them. It does nothing if the plan starts its own servers.
func (o *options) resolveAttached() {
	if !o.plan.Attach.Asked() || len(o.plan.Topologies) != 1 {
		return
	}
	for name, value := range map[string]string{"topology": o.plan.Topologies[0].Name, "counter": o.plan.Counter.Name} {
		if v := o.Value(name); v.Text != value {
			v.Text, o.Origins[name] = value, "--"+addrFlag
		}
	}
}

// The method attached gives the plan the passwords of an existing deployment, and a function that prints messages
// about it. The function prints each line only once.
func (e Env) attached(o *options) {
	said := map[string]bool{}
	o.plan.Attach.Secrets = e.secrets
	o.plan.Attach.Tell = func(line string) {
		if !said[line] && !o.quiet {
			e.lines("attached:", errors.New(line))
		}
		said[line] = true
	}
}
