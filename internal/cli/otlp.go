package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// sender sends metrics to an OpenTelemetry collector. If the collector fails, it prints a warning; the run continues.
type sender struct {
	*numbers
	e        Env
	provider *metric.MeterProvider
}

// collectorAddress parses the address of a collector. A missing path becomes /v1/metrics.
func collectorAddress(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("a collector is http://HOST:PORT or https://HOST:PORT, as in http://127.0.0.1:4318")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/metrics"
	}
	return u.String(), nil
}

func openOTLP(ctx context.Context, e Env, o *options, address string) (show, error) {
	n, err := newNumbers()
	if err != nil {
		return nil, err
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(address))
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { e.say(o, "--otlp: %v", err) }))
	reader := metric.NewPeriodicReader(exporter,
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(n.registry))))
	return &sender{n, e, metric.NewMeterProvider(metric.WithReader(reader),
		metric.WithResource(resource.NewSchemaless(attribute.String("service.name", "hammerlock"))))}, nil
}

// close sends the final values, and then stops sending.
func (s *sender) close(ctx context.Context, _ string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scrapeTimeout)
	defer cancel()
	if err := s.provider.Shutdown(ctx); err != nil {
		s.e.lines("warning:", fmt.Errorf("--otlp: %w", err))
	}
	return nil
}
