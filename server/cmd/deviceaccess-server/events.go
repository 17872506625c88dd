package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

const (
	// eventInterval is the pause of events tail after it has shown all events.
	eventInterval = 2 * time.Second
	// eventOverlap is how long an event may become visible after a later one, because its transaction took longer.
	eventOverlap = 30 * time.Second
	// maxEvents is how many events tail asks for at once.
	maxEvents = 1000
)

func eventsCommand() *cli.Command {
	return &cli.Command{
		Name:  "events",
		Usage: "follow the events of a workspace, over the API",
		Commands: []*cli.Command{
			{
				Name:  "tail",
				Usage: "print events as they happen, oldest first, without PINs",
				Description: "JSON has one object per line, and YAML one document per event. To resume a tail that stopped, set\n" +
					"--since to the time of its last event.",
				Flags: apiCommandFlags(
					&cli.StringFlag{
						Name:  "since",
						Value: "0s",
						Usage: "start with events from `TIME` on: a time such as 2026-01-31T12:00:00Z, or an age such as 15m or 7d",
					},
					&cli.StringSliceFlag{
						Name:  "type",
						Usage: "print events of the `TYPE`, such as device.disconnected; repeatable",
					},
					&cli.StringFlag{Name: "device", Usage: "print events of the `DEVICE`, an id or an exact name"},
					&cli.StringFlag{Name: "code", Usage: "print events of the code `ID`"},
					&cli.BoolFlag{Name: "no-follow", Usage: "end after the events that have happened"},
				),
				Action: withClient(tailEvents),
			},
		},
	}
}

func tailEvents(ctx context.Context, c *cli.Command, to *client) error {
	since, err := parseTime(c.String("since"), time.Now())
	if err != nil {
		return usagef("--since: %w", err)
	}
	request := api.ListEventsRequest{AccessCodeID: c.String("code"), Limit: maxEvents}
	if types := c.StringSlice("type"); len(types) > 0 {
		request.EventTypes = &types
	}
	if name := c.String("device"); name != "" {
		d, err := to.findDevice(ctx, name)
		if err != nil {
			return err
		}
		request.DeviceID = d.DeviceID
	}
	t := eventTail{client: to, request: request, from: since, seen: map[string]time.Time{}}
	for more := true; ; {
		if !more {
			if c.Bool("no-follow") {
				return nil
			}
			select {
			case <-ctx.Done(): // Ctrl-C is how a tail ends
				return nil
			case <-time.After(eventInterval):
			}
		}
		if more, err = t.next(ctx, func(e api.Event) error { return printEvent(c, e) }); err != nil {
			select {
			case <-ctx.Done():
				return nil
			default:
				return err
			}
		}
	}
}

// eventTail reads events once each. Events can become visible after later ones, so each read overlaps the last one.
type eventTail struct {
	client  *client
	request api.ListEventsRequest
	from    time.Time            // where the next read starts
	offset  int                  // events to skip from there
	newest  time.Time            // of all events so far
	seen    map[string]time.Time // events at and after from, by id
}

// next reads a page of events and passes new ones to show. It returns whether there may be more.
func (t *eventTail) next(ctx context.Context, show func(api.Event) error) (more bool, err error) {
	request := t.request
	request.Since, request.UnstableOffset = t.from.UTC().Format(time.RFC3339Nano), t.offset
	answer, err := api.Call[api.EventsResponse](ctx, t.client.ListEvents, request)
	if err != nil {
		return false, err
	}
	for _, e := range answer.Events {
		if _, known := t.seen[e.EventID]; known {
			continue
		}
		t.seen[e.EventID] = e.CreatedAt
		if e.CreatedAt.After(t.newest) {
			t.newest = e.CreatedAt
		}
		if err := show(e); err != nil {
			return false, err
		}
	}
	if len(answer.Events) == maxEvents {
		t.offset += maxEvents
		return true, nil
	}
	t.offset = 0
	if from := t.newest.Add(-eventOverlap); from.After(t.from) {
		t.from = from
	}
	for id, at := range t.seen {
		if at.Before(t.from) {
			delete(t.seen, id)
		}
	}
	return false, nil
}

// printEvent prints an event in the format of --output.
func printEvent(c *cli.Command, e api.Event) error {
	switch c.String("output") {
	case outputID:
		_, err := fmt.Println(e.EventID)
		return err
	case outputJSON:
		text, err := encodeWithoutSecrets(e)
		if err == nil {
			_, err = fmt.Println(string(text))
		}
		return err
	case outputYAML:
		if _, err := fmt.Println("---"); err != nil {
			return err
		}
		return printDocument(os.Stdout, outputYAML, e)
	}
	_, err := fmt.Printf("%s  %-40s  %s\n", formatTime(e.OccurredAt), printable(e.EventType), describeEvent(e))
	return err
}

// eventSubjects are the fields of events that describeEvent shows.
var eventSubjects = []string{
	"device_id", "access_code_id", "acs_system_id", "acs_user_id", "user_identity_id", "connect_webview_id",
	"client_session_id", "action_attempt_id", "error_code", "method", "action_type", "status",
}

// describeEvent returns what an event is about.
func describeEvent(e api.Event) string {
	var words []string
	for _, name := range eventSubjects {
		if text, _ := e.AdditionalProperties[name].(string); text != "" {
			words = append(words, name+"="+printable(text))
		}
	}
	return strings.Join(words, " ")
}
