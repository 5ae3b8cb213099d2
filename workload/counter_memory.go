package workload

import (
	"context"
	"sync"

	"hammerlock/history"
	"hammerlock/locks"
)

var memoryStore = CounterSpec{
	Name:  "memory",
	Doc:   "the memory of the suite; one process only",
	Place: InMemory,
	Open:  func(CounterEnv) (Counter, error) { return newMemoryCounter(), nil },
}

var memoryFenced = CounterSpec{
	Name:   "memory-fenced",
	Doc:    "the same, fenced under its mutex",
	Place:  InMemory,
	Fenced: true,
	Open: func(CounterEnv) (Counter, error) {
		return &memoryFencedCounter{memoryCounter{counts: map[string]Count{}}}, nil
	},
}

// newMemoryCounter makes a counter in the memory of this process. Load is atomic and Store is atomic; the two
// together are not.
func newMemoryCounter() Counter { return &memoryCounter{counts: map[string]Count{}} }

type memoryCounter struct {
	mu     sync.Mutex
	counts map[string]Count
}

func (m *memoryCounter) Load(_ context.Context, page string) (Count, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[page], nil
}

func (m *memoryCounter) Store(_ context.Context, page string, c Count) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[page] = c
	return nil
}

func (*memoryCounter) Close() error { return nil }

func (m *memoryCounter) Add(_ context.Context, page string, writer history.ID) (Count, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.counts[page]
	m.counts[page] = Count{Views: old.Views + 1, Writer: writer}
	return old, nil
}

func (m *memoryCounter) Transact(ctx context.Context, page string, visit func(Count, func(Count) error) error) error {
	seen, _ := m.Load(ctx, page) // Load of this counter returns no error
	return visit(seen, func(c Count) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.counts[page] != seen {
			return locks.ErrConflict
		}
		m.counts[page] = c
		return nil
	})
}

type memoryFencedCounter struct{ memoryCounter }

func (m *memoryFencedCounter) LoadFor(_ context.Context, page string, fence int64) (Count, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts[page]
	if fence-1 < c.Fence {
		return Count{}, locks.ErrFenced
	}
	c.Fence = fence - 1
	m.counts[page] = c
	return c, nil
}

func (m *memoryFencedCounter) Store(_ context.Context, page string, c Count) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Fence <= m.counts[page].Fence {
		return locks.ErrFenced
	}
	m.counts[page] = c
	return nil
}
