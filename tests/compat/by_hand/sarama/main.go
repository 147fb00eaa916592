// sarama against a broker: go run . HOST:PORT. Prints one line for each thing tried; ends with 1 if one failed.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const topic = "sarama"

var failed = false

func try(what string, attempt func() error) {
	if err := attempt(); err != nil {
		failed = true
		fmt.Printf("FAILED  %s: %v\n", what, err)
		return
	}
	fmt.Printf("ok      %s\n", what)
}

func settings(version sarama.KafkaVersion) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = version
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func produce(codec sarama.CompressionCodec, version sarama.KafkaVersion, idempotent bool) func() error {
	return func() error {
		config := settings(version)
		config.Producer.Compression = codec
		if idempotent {
			config.Producer.Idempotent = true
			config.Producer.RequiredAcks = sarama.WaitForAll
			config.Net.MaxOpenRequests = 1
		}
		producer, err := sarama.NewSyncProducer([]string{os.Args[1]}, config)
		if err != nil {
			return err
		}
		defer producer.Close()
		return producer.SendMessages([]*sarama.ProducerMessage{
			{Topic: topic, Key: sarama.StringEncoder("key"), Value: sarama.StringEncoder("value"),
				Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte("1")}}},
			{Topic: topic, Key: sarama.StringEncoder("tombstone")},
			{Topic: topic, Value: sarama.ByteEncoder(bytes.Repeat([]byte("x"), 900_000))},
		})
	}
}

func consume(count int, version sarama.KafkaVersion) func() error {
	return func() error {
		consumer, err := sarama.NewConsumer([]string{os.Args[1]}, settings(version))
		if err != nil {
			return err
		}
		defer consumer.Close()
		partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
		if err != nil {
			return err
		}
		defer partition.Close()
		for seen := 0; seen < count; seen++ {
			select {
			case message := <-partition.Messages():
				if message.Offset != int64(seen) {
					return fmt.Errorf("offset %d instead of %d", message.Offset, seen)
				}
			case <-time.After(20 * time.Second):
				return fmt.Errorf("only %d of %d came", seen, count)
			}
		}
		return nil
	}
}

type member struct{ wanted, seen int }

func (*member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*member) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		if m.seen++; m.seen == m.wanted {
			session.Commit()
			return nil
		}
	}
	return nil
}

func group(wanted int) func() error {
	return func() error {
		joined, err := sarama.NewConsumerGroup([]string{os.Args[1]}, "sarama", settings(sarama.V3_6_0_0))
		if err != nil {
			return err
		}
		defer joined.Close()
		deadline, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		handler := &member{wanted: wanted}
		if err := joined.Consume(deadline, []string{topic}, handler); err != nil {
			return err
		}
		if handler.seen != wanted {
			return fmt.Errorf("only %d of %d came", handler.seen, wanted)
		}
		return nil
	}
}

func main() {
	admin, err := sarama.NewClusterAdmin([]string{os.Args[1]}, settings(sarama.V3_6_0_0))
	if err != nil {
		panic(err)
	}
	defer admin.Close()
	admin.DeleteTopic(topic)

	retention := "86400000"
	try("create a topic with settings", func() error {
		detail := &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1,
			ConfigEntries: map[string]*string{"retention.ms": &retention}}
		return admin.CreateTopic(topic, detail, false)
	})
	for name, codec := range map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	} {
		try("produce, "+name, produce(codec, sarama.V3_6_0_0, false))
	}
	try("produce, idempotent", produce(sarama.CompressionNone, sarama.V3_6_0_0, true))
	try("produce as a client of Kafka 1.0", produce(sarama.CompressionNone, sarama.V1_0_0_0, false))
	try("consume all", consume(3*7, sarama.V3_6_0_0))
	try("consume as a client of Kafka 1.0", consume(3*7, sarama.V1_0_0_0))
	try("describe and alter settings", func() error {
		value := "1000000"
		set := map[string]sarama.IncrementalAlterConfigsEntry{
			"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}
		if err := admin.IncrementalAlterConfig(sarama.TopicResource, topic, set, false); err != nil {
			return err
		}
		entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		for _, entry := range entries {
			if entry.Name == "retention.ms" && entry.Value != value {
				return fmt.Errorf("retention.ms is %s", entry.Value)
			}
		}
		return err
	})
	try("delete records", func() error { return admin.DeleteRecords(topic, map[int32]int64{0: 5}) })
	try("group: join, commit", group(16))
	try("group: list, describe, offsets", func() error {
		if _, err := admin.ListConsumerGroups(); err != nil {
			return err
		}
		offsets, err := admin.ListConsumerGroupOffsets("sarama", map[string][]int32{topic: {0}})
		if err != nil {
			return err
		}
		if offset := offsets.GetBlock(topic, 0).Offset; offset != 21 {
			return fmt.Errorf("committed %d instead of 21", offset)
		}
		return nil
	})
	try("add partitions", func() error { return admin.CreatePartitions(topic, 2, nil, false) })
	try("describe log directories", func() error {
		_, err := admin.DescribeLogDirs([]int32{0})
		return err
	})
	try("delete the topic", func() error { return admin.DeleteTopic(topic) })
	if failed {
		os.Exit(1)
	}
}
