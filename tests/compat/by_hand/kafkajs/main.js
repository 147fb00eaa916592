// kafkajs against a broker: node main.js HOST:PORT. Prints one line for each thing tried; ends with 1 if one failed.
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING })
const topic = 'kafkajs'
let failed = false

async function attempt(what, run) {
  try {
    await run()
    console.log(`ok      ${what}`)
  } catch (error) {
    failed = true
    console.log(`FAILED  ${what}: ${error}`)
  }
}

function expect(found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`)
  }
}

async function produce(compression, idempotent = false) {
  const producer = kafka.producer({ idempotent })
  await producer.connect()
  const messages = [
    { key: 'key', value: 'value', headers: { h: '1' }, timestamp: '1700000000000' },
    { key: 'tombstone', value: null },
    { value: 'x'.repeat(900000) },
  ]
  await producer.send({ topic, compression, messages })
  await producer.disconnect()
}

async function consume(count) {
  const consumer = kafka.consumer({ groupId: 'kafkajs' })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const offsets = []
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`only ${offsets.length} of ${count} came`)), 30000).unref()
    consumer.run({
      eachMessage: async ({ message }) => {
        offsets.push(Number(message.offset))
        if (offsets.length === count) resolve()
      },
    })
  })
  expect(offsets, [...Array(count).keys()])
  await consumer.disconnect()
}

async function main() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.deleteTopics({ topics: [topic] }).catch(() => {})

  await attempt('create a topic with settings', async () => {
    const configEntries = [{ name: 'retention.ms', value: '86400000' }]
    expect(await admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }] }), true)
  })
  await attempt('produce, none', () => produce(CompressionTypes.None))
  await attempt('produce, gzip', () => produce(CompressionTypes.GZIP))
  await attempt('produce, snappy', () => produce(CompressionTypes.Snappy))
  await attempt('produce, idempotent', () => produce(CompressionTypes.None, true))
  await attempt('list offsets, also by time', async () => {
    expect((await admin.fetchTopicOffsets(topic))[0].high, '12')
    expect((await admin.fetchTopicOffsetsByTimestamp(topic, 1600000000000))[0].offset, '0')
  })
  await attempt('describe and alter settings', async () => {
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    const configEntries = [{ name: 'retention.ms', value: '1000000' }]
    await admin.alterConfigs({ resources: [{ ...resource, configEntries }] })
    const found = await admin.describeConfigs({ resources: [{ ...resource, configNames: ['retention.ms'] }] })
    expect(found.resources[0].configEntries[0].configValue, '1000000')
  })
  await attempt('group: join, consume, commit, leave', () => consume(12))
  await attempt('group: offsets', async () => {
    const found = await admin.fetchOffsets({ groupId: 'kafkajs', topics: [topic] })
    expect(found[0].partitions[0].offset, '12')
  })
  await attempt('delete records', () =>
    admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '5' }] }))
  await attempt('add partitions', () => admin.createPartitions({ topicPartitions: [{ topic, count: 2 }] }))
  await attempt('describe the cluster', async () => expect((await admin.describeCluster()).brokers.length, 1))
  await attempt('delete the topic', () => admin.deleteTopics({ topics: [topic] }))
  await admin.disconnect()
  process.exit(failed ? 1 : 0)
}

main()
