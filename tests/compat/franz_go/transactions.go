// A transactional producer of franz-go, driven by lines on standard input; each is answered by a line.
//
//	transactions BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS
//
// begin | send TOPIC PARTITION VALUE | offset GROUP TOPIC OFFSET | commit | abort
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var ctx = context.Background()

func main() {
	timeout, _ := strconv.Atoi(os.Args[3])
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.TransactionalID(os.Args[2]),
		kgo.TransactionTimeout(time.Duration(timeout)*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	)
	if err == nil {
		// The client initializes itself with its first use; a new producer must fence others at once.
		_, _, err = client.ProducerID(ctx)
	}
	answer(err)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer(run(client, strings.Split(lines.Text(), " ")))
	}
}

func run(client *kgo.Client, words []string) error {
	switch words[0] {
	case "begin":
		return client.BeginTransaction()
	case "commit":
		return client.EndTransaction(ctx, kgo.TryCommit)
	case "abort":
		return client.EndTransaction(ctx, kgo.TryAbort)
	case "send":
		partition, _ := strconv.Atoi(words[2])
		record := &kgo.Record{Topic: words[1], Partition: int32(partition), Value: []byte(words[3])}
		return client.ProduceSync(ctx, record).FirstErr()
	case "offset":
		offset, _ := strconv.ParseInt(words[3], 10, 64)
		return commitOffset(client, words[1], words[2], offset)
	}
	return fmt.Errorf("unknown: %s", words[0])
}

// Without a GroupTransactSession, the client leaves TxnOffsetCommit to its user. In v1 the group is added first.
func commitOffset(client *kgo.Client, group, topic string, offset int64) error {
	id, epoch, err := client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = os.Args[2], id, epoch, group
	added, err := add.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	commit := kmsg.NewTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = os.Args[2], group, id, epoch
	commit.Generation = -1
	row := kmsg.NewTxnOffsetCommitRequestTopic()
	row.Topic = topic
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	row.Partitions = append(row.Partitions, partition)
	commit.Topics = append(commit.Topics, row)
	committed, err := commit.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode)
}

func answer(err error) {
	if err != nil {
		fmt.Printf("refused %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Println("ok")
}
