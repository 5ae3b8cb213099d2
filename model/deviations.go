package model

import "hammerlock/history"

// Party is who is responsible for a deviation.
type Party string

// The parties.
const (
	TheLock    Party = "lock"
	TheService Party = "service"
)

// Deviation is one way in which a lock can be wrong.
type Deviation struct {
	Name   string // a cause in package history
	Party  Party
	Claim  string // the claim in package history that it breaks
	Words  string // what happened
	Remedy string
	// prior orders deviations that explain equally much: the most usual has the lowest. A foreign release is chosen
	// only if something shows it.
	prior Cost
}

// Deviations are all that a story can contain, in the order of their priors.
var Deviations = [...]Deviation{
	falseRelease: {history.FalseRelease, TheLock, "owned",
		"a release of a hold that was over was answered with success",
		"answer with the number of keys that the release deleted", 1},
	doubleRelease: {history.DoubleRelease, TheLock, "owned",
		"a second release of the same hold was answered with success",
		"answer with the number of keys that the release deleted", 1},
	foreignRelease: {history.ForeignRelease, TheLock, "owned",
		"a release freed the lock of another holder",
		"compare the token and delete the key in one step, as a script does", 2},
	silentReacquire: {history.SilentReacquire, TheLock, "excludes",
		"an extension took the lock back after the hold was over",
		"extend only a key that exists with the own token, in one step", 4},
	falseExtension: {history.FalseExtension, TheLock, "excludes",
		"an extension was answered with success, and the lease was not longer",
		"answer with success only if the key had the own token", 5},
	doubleGrant: {history.DoubleGrant, TheLock, "excludes",
		"the lock was granted while another holder had it",
		"make the acquire one atomic step: SET with NX", 7},
	prematureLoss: {history.PrematureLoss, TheService, "expires",
		"the servers ended a lease before its time",
		"ask for the lease in the unit that the command takes", 14},
	falseRefusal: {history.FalseRefusal, TheLock, "owned",
		"the holder was told that the lock is not its own",
		"compare with the token that the key was set to", 20},
	ttlTooLong: {history.TTLTooLong, TheLock, "expires",
		"a lease lasted longer than was asked for",
		"set the expiry in the command that sets the key", 30},
	leak: {history.Leak, TheLock, "cleans",
		"a release was answered with success, and the key stayed",
		"wait for the answer of the command that deletes the key", 50},
	phantom: {history.Phantom, TheLock, "cleans",
		"the servers had a key of a hold that was over, or that was refused",
		"set the key and look whether it was free in one step", 60},
}

// Further priors. The prior unproven is for an acquire without an answer, if only a deviation shows that it was granted
// or was not. The prior unheard is for a foreign release without an answer, which ranks between an extension that was
// answered falsely and a double grant. The prior planned is for a loss by a
// planned fault, which ranks between usual and rare deviations.
const unproven, unheard, planned = 12 * onePrior, 4 * onePrior, 8 * onePrior

type deviation uint8

const (
	falseRelease deviation = iota
	doubleRelease
	foreignRelease
	silentReacquire
	falseExtension
	doubleGrant
	prematureLoss
	falseRefusal
	ttlTooLong
	leak
	phantom
)

func (d deviation) cost() Cost { return oneDeviation + Deviations[d].prior*onePrior }

// Keeps reports whether a deviation only keeps others out of the lock. Then it explains no two holders at once, unless
// it has ended the hold of one of them.
func (d *Deviation) Keeps() bool {
	switch d {
	case &Deviations[falseRefusal], &Deviations[ttlTooLong], &Deviations[leak], &Deviations[phantom]:
		return true
	}
	return false
}
