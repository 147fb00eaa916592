// franz-go against a broker: go run . HOST:PORT. Prints one line for each thing tried; ends with 1 if one failed.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

const topic = "franz-go"

var (
	ctx    = context.Background()
	failed = false
)

func try(what string, attempt func() error) {
	if err := attempt(); err != nil {
		failed = true
		fmt.Printf("FAILED  %s: %v\n", what, err)
		return
	}
	fmt.Printf("ok      %s\n", what)
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(os.Args[1]))...)
	if err != nil {
		panic(err)
	}
	return made
}

func produce(codec kgo.CompressionCodec, options ...kgo.Opt) func() error {
	return func() error {
		producer := client(append(options, kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic))...)
		defer producer.Close()
		records := []*kgo.Record{
			{Key: []byte("key"), Value: []byte("value"), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("1")}}},
			{Value: nil, Key: []byte("tombstone")},
			{Value: bytes.Repeat([]byte("x"), 900_000)},
		}
		return producer.ProduceSync(ctx, records...).FirstErr()
	}
}

func consume(count int, options ...kgo.Opt) func() error {
	return func() error {
		from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
		consumer := client(append(options, kgo.ConsumePartitions(from))...)
		defer consumer.Close()
		deadline, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		seen := 0
		for seen < count {
			fetches := consumer.PollFetches(deadline)
			if err := fetches.Err(); err != nil {
				return fmt.Errorf("after %d records: %w", seen, err)
			}
			for _, record := range fetches.Records() {
				if record.Offset != int64(seen) {
					return fmt.Errorf("offset %d instead of %d", record.Offset, seen)
				}
				seen++
			}
		}
		return nil
	}
}

func main() {
	admin := kadm.NewClient(client())
	defer admin.Close()
	admin.DeleteTopics(ctx, topic)

	try("create a topic with settings", func() error {
		retention := "86400000"
		_, err := admin.CreateTopic(ctx, 1, 1, map[string]*string{"retention.ms": &retention}, topic)
		return err
	})
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for name, codec := range codecs {
		try("produce, idempotent, "+name, produce(codec))
	}
	try("produce, acks 1, not idempotent", produce(kgo.NoCompression(), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())))
	try("produce as a client of Kafka 1.0", produce(kgo.NoCompression(), kgo.MaxVersions(kversion.V1_0_0())))
	try("consume all", consume(3*7))
	try("consume as a client of Kafka 1.0", consume(3*7, kgo.MaxVersions(kversion.V1_0_0())))
	try("list offsets", func() error {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		if end, _ := ends.Lookup(topic, 0); end.Offset != 21 {
			return fmt.Errorf("end %d instead of 21", end.Offset)
		}
		_, err = admin.ListOffsetsAfterMilli(ctx, 1, topic)
		return err
	})
	try("describe and alter settings", func() error {
		value := "1000000"
		altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, topic)
		if err != nil {
			return err
		}
		if altered[0].Err != nil {
			return altered[0].Err
		}
		described, err := admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			return err
		}
		for _, config := range described[0].Configs {
			if config.Key == "retention.ms" && config.MaybeValue() == value {
				return nil
			}
		}
		return fmt.Errorf("retention.ms is not %s", value)
	})
	try("delete records", func() error {
		wanted := kadm.Offsets{}
		wanted.AddOffset(topic, 0, 5, -1)
		_, err := admin.DeleteRecords(ctx, wanted)
		return err
	})
	try("add partitions", func() error {
		rows, err := admin.CreatePartitions(ctx, 2, topic)
		if err != nil {
			return err
		}
		return rows.Error()
	})
	try("describe log directories", func() error {
		described, err := admin.DescribeAllLogDirs(ctx, nil)
		for _, broker := range described {
			for _, directory := range broker {
				if directory.Err != nil {
					return directory.Err
				}
			}
		}
		return err
	})
	try("group: join, commit, describe, lag", group(admin))
	try("delete the topic", func() error {
		_, err := admin.DeleteTopic(ctx, topic)
		return err
	})
	if failed {
		os.Exit(1)
	}
}

func group(admin *kadm.Client) func() error {
	return func() error {
		consumer := client(kgo.ConsumerGroup("franz-go"), kgo.ConsumeTopics(topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
		defer consumer.Close()
		deadline, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		for seen := 0; seen < 16; {
			fetches := consumer.PollFetches(deadline)
			if err := fetches.Err(); err != nil {
				return err
			}
			seen += fetches.NumRecords()
		}
		if err := consumer.CommitUncommittedOffsets(deadline); err != nil {
			return err
		}
		lags, err := admin.Lag(deadline, "franz-go")
		if err != nil {
			return err
		}
		if lag := lags["franz-go"]; lag.Error() != nil || lag.Lag.Total() != 0 {
			return fmt.Errorf("lag %d, %v", lag.Lag.Total(), lag.Error())
		}
		return nil
	}
}
