// A transactional producer of kafkajs, driven by lines on standard input; each is answered by a line.
//
//     node transactions.js BOOTSTRAP TRANSACTIONAL_ID TIMEOUT_MS
//
// begin | send TOPIC PARTITION VALUE | offset GROUP TOPIC OFFSET | commit | abort
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, transactionalId, timeoutMs] = process.argv.slice(2)
const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING })
const producer = kafka.producer({
  transactionalId,
  transactionTimeout: Number(timeoutMs),
  maxInFlightRequests: 1,
  idempotent: true,
})
let transaction

async function run(words) {
  switch (words[0]) {
    case 'begin':
      transaction = await producer.transaction()
      return
    case 'commit':
      return transaction.commit()
    case 'abort':
      return transaction.abort()
    case 'send':
      return transaction.send({ topic: words[1], messages: [{ partition: Number(words[2]), value: words[3] }] })
    case 'offset': {
      const topics = [{ topic: words[2], partitions: [{ partition: 0, offset: words[3] }] }]
      return transaction.sendOffsets({ consumerGroupId: words[1], topics })
    }
  }
  throw new Error(`unknown: ${words[0]}`)
}

async function answer(step) {
  try {
    await step()
    console.log('ok')
  } catch (error) {
    console.log(`refused ${error.name}: ${error.message}`.replace(/\n/g, ' '))
  }
}

async function main() {
  await answer(() => producer.connect())
  for await (const line of readline.createInterface({ input: process.stdin })) {
    await answer(() => run(line.split(' ')))
  }
  process.exit()
}

main()
