package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
)

// Counter is the store of the page views. Load and Store are two steps on purpose: a lost update must be
// possible. It is used by many workers at once.
type Counter interface {
	// Load reads a page's count; the zero Count if it was never written.
	Load(ctx context.Context, page string) (Count, error)
	Store(ctx context.Context, page string, c Count) error
}

// Count is a number of page views and the operation that wrote it, so that every load says whose store it saw.
type Count struct {
	Views  int64
	Writer history.ID
}

// NewRedisCounter keeps the counts in a Redis server, as "views writer". The caller closes the client.
func NewRedisCounter(client redis.UniversalClient) Counter { return redisCounter{client} }

type redisCounter struct{ client redis.UniversalClient }

func (r redisCounter) Load(ctx context.Context, page string) (Count, error) {
	text, err := r.client.Get(ctx, page).Result()
	if errors.Is(err, redis.Nil) {
		return Count{}, nil
	}
	if err != nil {
		return Count{}, err
	}
	return parseCount(text)
}

func (r redisCounter) Store(ctx context.Context, page string, c Count) error {
	var buf [48]byte
	text := strconv.AppendInt(buf[:0], c.Views, 10)
	text = append(text, ' ')
	text = strconv.AppendUint(text, uint64(c.Writer), 10)
	return r.client.Set(ctx, page, text, 0).Err()
}

func parseCount(text string) (Count, error) {
	views, writer, _ := strings.Cut(text, " ")
	v, err := strconv.ParseInt(views, 10, 64)
	if err != nil {
		return Count{}, fmt.Errorf("page views %.40q: %w", text, err)
	}
	w, err := strconv.ParseUint(writer, 10, 64)
	if err != nil {
		return Count{}, fmt.Errorf("page views %.40q: %w", text, err)
	}
	return Count{Views: v, Writer: history.ID(w)}, nil
}

// NewMemoryCounter keeps the counts in this process. Each step is atomic, the two together are not.
func NewMemoryCounter() Counter { return &memoryCounter{counts: map[string]Count{}} }

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
